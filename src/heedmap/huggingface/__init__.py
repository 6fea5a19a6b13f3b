"""Read and replace the attention of Hugging Face transformers at one place."""
