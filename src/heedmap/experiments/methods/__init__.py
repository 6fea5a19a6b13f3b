"""How the numbers of several questions are computed: searches, erasures, texts read again, rankings."""
