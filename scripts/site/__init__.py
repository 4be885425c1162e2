"""Makes the site of the docs: ``make docs``."""
