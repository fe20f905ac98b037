"""A row's way in: from what a user hands over to the commit that shows it."""
