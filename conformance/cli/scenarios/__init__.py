"""Commands about scenarios and the files of their authors."""
