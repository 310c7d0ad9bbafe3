import TestSupport

extension Fixture {
  /// Runs a subcommand of microbit-gateway to its end, with or without a running gateway.
  /// - Parameter prefix: a program that runs the subcommand, and its arguments.
  func command(
    _ arguments: [String], prefix: [String] = []
  ) async throws -> (status: Int32, text: String) {
    let process = try start(arguments, prefix: prefix)
    let status = try await process.exitStatus(within: Self.patience)
    return (status, process.text)
  }

  func start(_ arguments: [String], prefix: [String] = []) throws -> ChildProcess {
    let configuration = ["--config", folder.path + "/config.json"]
    let words = prefix + [try program("microbit-gateway")] + arguments + configuration
    return try ChildProcess(words[0], Array(words.dropFirst()), environment: environment)
  }
}
