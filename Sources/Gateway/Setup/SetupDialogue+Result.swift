import Configuration
import JSON

/// The result of the dialogue.
extension SetupDialogue {
  /// The document that the answers make.
  private var document: JSONValue {
    SetupDocument.document(present, microbits.devices, servesLater: microbits.servesLater, broker)
  }

  /// The configuration that the answers make, with its password.
  var configuration: Result<Configuration, CommandFailure> {
    do throws(ConfigurationErrors) {
      var configuration = try ConfigurationFile.parse(
        Array(SetupDocument.text(document).utf8), in: present.folder
      ).configuration
      configuration.mqtt.password = broker.password.bytes
      if var tls = configuration.mqtt.tls {
        tls.caFile = tls.caFile?.resolved(in: present.folder)
        tls.certFile = tls.certFile?.resolved(in: present.folder)
        tls.keyFile = tls.keyFile?.resolved(in: present.folder)
        configuration.mqtt.tls = tls
      }
      return .success(configuration)
    } catch {
      return .failure(
        CommandFailure(.configuration, error.errors.map(\.description).joined(separator: "\n")))
    }
  }

  /// The changes to write.
  var plan: SetupPlan {
    let document = document
    var plan = SetupPlan()
    if document != present.document { plan.text = SetupDocument.text(document) }
    if case .typed(let bytes) = broker.password {
      plan.password = bytes
      plan.passwordFile = SetupDocument.name(present.document?["mqtt"]?["password_file"])
    }
    return plan
  }
}
