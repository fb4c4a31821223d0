"""The checks of a syntax tree: types, overloads and literals (cel-go's ``checker``)."""
