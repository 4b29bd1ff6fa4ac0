from edp.cli import main

raise SystemExit(main())
