"""heedmap: should you heed the heat map?"""
