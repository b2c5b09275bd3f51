"""From a moment to something a person can see: scene, layout, and the renderers."""
