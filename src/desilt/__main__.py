from desilt.cli.main import main

main()
