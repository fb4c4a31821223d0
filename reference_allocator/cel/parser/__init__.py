"""The parser: from source text to syntax tree (cel-go's ``parser``)."""
