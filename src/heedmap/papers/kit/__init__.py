"""What every reproduction of a paper needs: its registry, the grid, what is kept, the result files."""
