"""Every plot of the book, one module a chapter; each function returns the arrays it drew."""
