"""How a person is reached: what verify found, what is remembered of conditions, messages, and what sends them."""
