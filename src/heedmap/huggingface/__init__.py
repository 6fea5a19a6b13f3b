"""The door into Hugging Face transformers: their attention read and replaced at one place."""
