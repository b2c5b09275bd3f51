"""Two recordings, or two iterations of one, laid beside each other: what is equal, what differs first."""
