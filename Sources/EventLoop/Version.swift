/// The version of all programs and of their packages (Semantic Versioning).
public enum Version {
  /// The only place that has it: scripts/common.sh reads this line for the packages.
  public static let current = "1.0.0"
}
