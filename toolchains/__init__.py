"""From pins to images: what a target is made of, how it is fetched, checked, built and proven."""
