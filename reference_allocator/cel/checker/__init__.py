"""From syntax tree to checked tree: types, overloads and literals (cel-go's ``checker``)."""
