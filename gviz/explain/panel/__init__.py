"""What the panel of a node says at one moment; terminal and page only draw it."""
