"""How a person is reached: what is remembered of conditions, messages about them, and the adapters that send them."""
