"""Write files atomically, lock folders, check names, and identify what tables were made of."""
