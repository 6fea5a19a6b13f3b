"""Write files whole, lock folders, name things."""
