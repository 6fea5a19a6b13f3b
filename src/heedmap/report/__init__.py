"""Show an audit: card, page, explanations of texts, figures as files and in notebooks."""
