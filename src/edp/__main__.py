from edp.cli import entry

raise SystemExit(entry())
