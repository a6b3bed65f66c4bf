"""What a gang asks: its pods, its place in the quota, its topology. Plain values and their readers. Pure."""
