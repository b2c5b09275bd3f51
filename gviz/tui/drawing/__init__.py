"""What the panels show, as lines of styled text: pure functions that know no widget, for both front ends."""
