// BlueZSimulator
