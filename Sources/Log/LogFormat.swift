/// The format of the log's lines.
public enum LogFormat: String, Sendable, CaseIterable {
  /// `level component: message key=value …`, with the time before it.
  case text
  /// A JSON object with `time`, `level`, `component`, `message` and the fields.
  case json
}
