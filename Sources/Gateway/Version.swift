/// The version of this program (Semantic Versioning).
public enum Version {
  public static let current = "0.1.0"
}
