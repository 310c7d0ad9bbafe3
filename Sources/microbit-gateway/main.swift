import Gateway

Program.run()
