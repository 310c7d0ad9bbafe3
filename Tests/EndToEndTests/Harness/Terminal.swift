import TestSupport

extension Fixture {
  /// Runs a command of the gateway as a user would, beside the gateway or without one.
  /// - Parameter prefix: a program that runs it, and its arguments.
  func command(
    _ arguments: [String], prefix: [String] = []
  ) async throws -> (status: Int32, text: String) {
    let process = try start(arguments, prefix: prefix)
    let status = try await process.exitStatus(within: Self.patience)
    return (status, process.text)
  }

  func start(_ arguments: [String], prefix: [String] = []) throws -> ChildProcess {
    let configuration = arguments.first == "bonds" ? [] : ["--config", folder.path + "/config.json"]
    let words = prefix + [try program("microbit-gateway")] + arguments + configuration
    return try ChildProcess(words[0], Array(words.dropFirst()), environment: environment)
  }
}
