"""What GPUs of members do: reads their exporters, keeps what they print, and answers what is known of them."""
