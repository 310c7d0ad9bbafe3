import Glibc

extension String {
  /// The text as one word of a command that the user gives to a shell: in quotation marks if it contains more than
  /// letters, digits and a few harmless characters.
  var shellWord: String {
    let isPlain =
      !isEmpty
      && unicodeScalars.allSatisfy { scalar in
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "/", ".", "_", "-", "+", ":", "@", "%", ",": true
        default: false
        }
      }
    return isPlain
      ? self : "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#) + "'"
  }

  /// The path as it is from any folder.
  var absolutePath: String {
    guard !hasPrefix("/"), let folder = getcwd(nil, 0) else { return self }
    defer { free(folder) }
    return "\(String(cString: folder))/\(self)"
  }
}
