"""The commands: NAME is `NAME_command` in the module NAME, a function or an app with commands."""
