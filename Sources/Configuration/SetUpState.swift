import JSON

extension Configuration {
  /// Whether somebody has decided who may open the page, which broker is used, or which devices: such a gateway is never open
  /// for set-up in a browser. This follows from what the file has, as a flag could be lost.
  ///
  /// - Parameter document: the JSON of the file.
  package func isSetUp(_ document: JSONValue) -> Bool {
    var page = HTTP()
    (page.port, page.language) = (http.port, http.language)
    return document["http"]?["enabled"] != nil || http != page || mqtt != MQTT() || devices != [Device()]
      || fleet
  }
}

extension ConfigurationFile {
  /// See ``Configuration/isSetUp(_:)``.
  package var isSetUp: Bool { configuration.isSetUp(document) }
}
