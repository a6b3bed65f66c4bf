"""What stands in front of Django: makes the environment, starts and stops the product, and says what is wrong.

Standard library only: it runs before anything is installed. It knows the product as processes and HTTP, and never
imports it.
"""
