import Foundation

/// One thing that a person gets wrong, and what the program says to it.
struct UserMistake: Sendable {
    let what: String
    /// The words behind `wakegate`; names in braces are filled in by the scene.
    let line: [String]
    var input = ""
    var variables: [String] = []
    let status: Int32
    /// Each stands in the output or on standard error: a whole line, or with `...` at an end a part of one.
    let says: [String]
    /// Whether `says` is all that is printed.
    var isAll = false

    init(
        _ what: String,
        _ line: String,
        input: String = "",
        variables: [String] = [],
        _ status: Int32,
        _ says: String...,
        all isAll: Bool = false
    ) {
        self.what = what
        self.line = line.split(separator: " ").map { String($0).replacing("~", with: " ") }
        self.input = input
        self.variables = variables
        self.status = status
        self.says = says
        self.isAll = isAll
    }
}

extension UserMistake {
    private static let silent = #"{"aps":{"content-available":1}}"#

    /// Mistakes in the words themselves, and in the files that they name.
    static let ofWords = [
        UserMistake(
            "no command",
            "",
            64,
            "wakegate: no command was given; try `wakegate dev`, or `wakegate --help` for all commands",
            all: true
        ),
        UserMistake(
            "a misspelt command",
            "stat",
            64,
            "wakegate: unknown command \"stat\"; did you mean `wakegate stats`?",
            all: true
        ),
        UserMistake(
            "a misspelt command of a group",
            "token isue",
            64,
            "wakegate: unknown command \"token isue\"; did you mean `wakegate token issue`?",
            all: true
        ),
        UserMistake(
            "a misspelt option",
            "push {token} --topc a",
            64,
            "wakegate: unknown option --topc; did you mean --topic?",
            "usage: wakegate push TOKEN --topic TOPIC [options]",
            "see `wakegate push --help`",
            all: true
        ),
        UserMistake("a missing option", "push {token}", 64, "wakegate: --topic is missing; write --topic TOPIC"),
        UserMistake(
            "a priority in words",
            "push {token} --topic {topic} --priority high",
            64,
            "wakegate: --priority is \"high\"; write 10, 5 or 1",
            all: true
        ),
        UserMistake(
            "a payload that was cut",
            "push {token} --topic {topic} --payload {\"aps\":{\"content-available\":1}",
            64,
            "wakegate: --payload ends too early, in the object that begins at line 1, column 1: it was cut short; "
                + "nothing was sent",
            "write a JSON object, such as \(Self.silent)",
            all: true
        ),
        UserMistake(
            "a payload of JavaScript",
            "push {token} --topic {topic} --payload {aps:{}}",
            64,
            "wakegate: --payload is not JSON: line 1, column 2: a name in double quotes should be here; "
                + "nothing was sent"
        ),
        UserMistake(
            "a payload that is a list",
            "push {token} --topic {topic} --payload [1]",
            64,
            "wakegate: --payload is JSON, but no object; nothing was sent"
        ),
        UserMistake(
            "an empty payload on standard input",
            "push {token} --topic {topic} --payload -",
            64,
            "wakegate: the payload on standard input is not JSON: it is empty; nothing was sent"
        ),
        UserMistake(
            "a payload's file that is missing",
            "push {token} --topic {topic} --payload @nofile.json",
            1,
            "wakegate: nofile.json cannot be read (no such file); name the payload's file behind --payload @",
            all: true
        ),
        UserMistake(
            "a payload's file that was cut",
            "push {token} --topic {topic} --payload @cut.json",
            64,
            "wakegate: the payload in cut.json ends too early, in the string that begins at line 2, column 3: it was "
                + "cut short; nothing was sent"
        ),
        UserMistake(
            "a payload's file without a name",
            "push {token} --topic {topic} --payload @",
            64,
            "wakegate: --payload @ names no file; write --payload @FILE",
            all: true
        ),
        UserMistake(
            "a provider's key without its team",
            "push {token} --topic {topic} --provider-key AuthKey.p8",
            64,
            "wakegate: --team is missing beside --provider-key; write --team TEAM",
            all: true
        ),
        UserMistake(
            "a provider's key that is missing",
            "push {token} --topic {topic} --provider-key no.p8 --team TEAM123456 --key-id KEY1234567",
            1,
            "wakegate: --provider-key: no.p8 cannot be read (no such file); ..."
        ),
        UserMistake(
            "an authority's file that is missing",
            "stats --ca no.pem",
            1,
            "wakegate: no.pem, which --ca names, cannot be read (no such file); name a file that is there",
            all: true
        ),
        UserMistake(
            "an authority that is no certificate",
            "stats --ca text.txt",
            1,
            "wakegate: text.txt, which --ca names, holds no certificate in PEM; name the PEM file of the authority "
                + "that signed the gateway's certificate",
            all: true
        ),
        UserMistake(
            "a certificate's file that is missing",
            "push {token} --topic {topic} --cert no.pem",
            1,
            "wakegate: no.pem cannot be read (no such file); look at --ca, --cert and --key",
            all: true
        ),
        UserMistake(
            "a client certificate without its key",
            "push {token} --topic {topic} --cert {ca}",
            1,
            "wakegate: {ca}, which --cert names, holds no private key in PEM; name the file of its key with --key",
            all: true
        ),
        UserMistake(
            "a client certificate that is none",
            "push {token} --topic {topic} --cert text.txt",
            1,
            "wakegate: text.txt, which --cert names, holds no certificate in PEM; name the PEM file of the certificate "
                + "to show",
            all: true
        ),
        UserMistake(
            "another certificate's key",
            "push {token} --topic {topic} --cert {ca} --key .wakegate/provider.p8",
            1,
            "...see whether the key is that of the certificate: look at --cert and --key",
            all: true
        ),
        UserMistake(
            "a client key without its certificate",
            "stats --key text.txt",
            64,
            "wakegate: --cert is missing beside --key; write --cert FILE",
            all: true
        ),
        UserMistake(
            "a token with a space in it",
            "stats --token a~b",
            64,
            "wakegate: the token has characters that none has; give it as `wakegate token issue` prints it",
            all: true
        ),
        UserMistake(
            "a port that is none",
            "stats --gateway https://127.0.0.1:99999",
            64,
            "wakegate: --gateway is \"https://127.0.0.1:99999\"; write a URL such as https://127.0.0.1:2197",
            all: true
        ),
        UserMistake(
            "a URL with the route in it",
            "push {token} --topic {topic} --gateway https://{edge}/3/device",
            64,
            "wakegate: --gateway is \"https://{edge}/3/device\"; leave out what stands behind the port: the command "
                + "adds it",
            all: true
        ),
        UserMistake(
            "a token's file that is missing",
            "stats --token-file no.token",
            1,
            "wakegate: no.token cannot be read (no such file); name the file with the token, as --token-file does",
            all: true
        ),
        UserMistake(
            "a key to add that is missing",
            "key add no.p8 --team TEAM123456 --key-id KEY1234567 --keys keys",
            1,
            "wakegate: no.p8 cannot be read (no such file); name a file that is there.",
            all: true
        ),
        UserMistake(
            "a key id that is none",
            "key add text.txt --team TEAM123456 --key-id short --keys keys",
            64,
            "wakegate: --key-id is \"short\"; a key id is 10 capital letters and digits, as Apple shows it beside the "
                + "key",
            all: true
        ),
        UserMistake(
            "a file without a key",
            "key add text.txt --team TEAM123456 --key-id KEY1234567 --keys keys",
            1,
            "wakegate: text.txt holds no key in PEM ..."
        ),
        UserMistake(
            "a key that a password protects",
            "key add encrypted.p8 --team TEAM123456 --key-id KEY1234567 --keys keys",
            1,
            "wakegate: encrypted.p8 holds no key in PEM without a password ...",
            all: true
        ),
        UserMistake(
            "a folder of keys that is missing",
            "key list --keys nokeys",
            1,
            "wakegate: nokeys is missing: no such folder; ..."
        ),
        UserMistake(
            "a trace that is missing",
            "simulate no.jsonl",
            1,
            "wakegate: no.jsonl cannot be read (no such file); name a trace file, or - for standard input",
            all: true
        ),
        UserMistake(
            "a folder for a trace",
            "simulate drawer",
            1,
            "wakegate: drawer cannot be read (it is a folder); name a trace file, or - for standard input",
            all: true
        ),
        UserMistake(
            "fault rules that are missing",
            "dev --faults no.json5 --state {folder}/faulty",
            78,
            "  no.json5: cannot be read (no such file); name a readable file with --faults"
        ),
        UserMistake(
            "fault rules to set that are missing",
            "faults set no.json5",
            1,
            "wakegate: no.json5 cannot be read (no such file); name the file with the rules",
            all: true
        ),
    ]

    /// Mistakes in tokens, contexts and the configuration.
    static let ofFiles = [
        UserMistake(
            "a role that is none",
            "token issue --role worke --topic {topic} --state {folder}/state",
            64,
            "wakegate: --role is \"worke\"; write worker or operator; did you mean worker?",
            all: true
        ),
        UserMistake(
            "a state folder that is none",
            "token issue --role worker --topic {topic} --state {folder}/wrong",
            1,
            "wakegate: there is no folder {folder}/wrong; name the state folder of a gateway, which makes it when it "
                + "starts",
            all: true
        ),
        UserMistake(
            "a token to revoke that was never issued",
            "token revoke 0123456789abcdef0123456789abcdef --state {folder}/state",
            1,
            "wakegate: no token 0123456789abcdef0123456789abcdef was issued from {folder}/state, and nothing is "
                + "revoked; see `wakegate token list`, and give --unlisted for one that an older version issued",
            all: true
        ),
        UserMistake(
            "a state folder that is everybody's",
            "token issue --role worker --topic {topic} --state drawer",
            1,
            "wakegate: others may enter the state folder {folder}/drawer (mode 0755); name a folder that is the "
                + "gateway's alone with --state DIR, or if this one is: chmod 700 {folder}/drawer",
            all: true
        ),
        UserMistake(
            "a context whose file is missing",
            "context add early --gateway https://{edge} --ca no.pem",
            0,
            "wakegate: {folder}/no.pem, which --ca names, is missing: no such file yet",
            "wakegate: use it with `wakegate context use early`",
            all: true
        ),
        UserMistake(
            "a context that is none",
            "context use prod",
            64,
            "wakegate: there is no context \"prod\"; ..."
        ),
        UserMistake(
            "a variable that is no URL",
            "stats",
            variables: ["WAKEGATE_URL=localhost"],
            64,
            "wakegate: WAKEGATE_URL is \"localhost\"; write a URL such as https://127.0.0.1:2197",
            all: true
        ),
        UserMistake(
            "a variable that names no certificate",
            "stats",
            variables: ["WAKEGATE_CA=text.txt"],
            1,
            "wakegate: text.txt, which WAKEGATE_CA names, holds no certificate in PEM; ..."
        ),
        UserMistake(
            "a configuration that is missing",
            "serve --check --config no.json5",
            78,
            "wakegate: the configuration has a fault:",
            "  no.json5: cannot be read (no such file); name a readable file with --config",
            all: true
        ),
        UserMistake(
            "a comma that is missing in the configuration",
            "serve --check --config comma.json5",
            78,
            "wakegate: the configuration has a fault:",
            "  comma.json5: is not JSON5 (line 3, column 3: a comma or } should be here); mend the syntax there",
            all: true
        ),
        UserMistake(
            "a key that stands twice in the configuration",
            "serve --check --config twice.json5",
            78,
            "wakegate: the configuration has a fault:",
            "  twice.json5: has \"admin\" twice (line 2, column 3; line 4, column 3); leave one of the two",
            all: true
        ),
        UserMistake(
            "a key that is misspelt in the configuration",
            "serve --check --config misspelt.json5",
            78,
            "  policy.launchIntervall: is not a key; did you mean policy.launchInterval?"
        ),
        UserMistake(
            "a certificate that is missing",
            "serve --check --config files.json5",
            78,
            "  tls.certificate: no.pem cannot be read (no such file); name a readable PEM file"
        ),
        UserMistake(
            "a port that is in use",
            "serve --check --edge off --admin {admin} --state {folder}/state",
            78,
            "wakegate: the configuration has a fault:",
            "  admin: {admin} is in use; stop who listens there, or choose another port",
            all: true
        ),
        UserMistake(
            "a store that a newer version wrote",
            "serve --check --edge off --admin 127.0.0.1:0 --state {newer}",
            78,
            "  state: {newer}/journal.sqlite has format 99, ..."
        ),
    ]

    /// Mistakes that only a gateway knows of.
    static let ofGateways = [
        UserMistake(
            "a device token that is none",
            "push zz --topic {topic}",
            1,
            "400 BadDeviceToken...",
            "wakegate: \"zz\" is no device token: an even number of hexadecimal digits, 32 to 200 of them"
        ),
        UserMistake(
            "a device that is not registered",
            "push {stranger} --topic {topic} --gateway https://{explicit} --ca {ca}",
            1,
            "400 BadDeviceToken...",
            "wakegate: no device is registered under this token; `wakegate device register {stranger} --topic {topic}` "
                + "does it, and registration: \"open\" takes every token"
        ),
        UserMistake(
            "a push that wakes nobody",
            "push {token} --topic {topic} --payload {\"aps\":{\"alert\":\"x\"}}",
            2,
            "200 no-wake...",
            "wakegate: no-wake: its aps has no \"content-available\": 1, so it is counted and wakes nobody; a silent "
                + "push is --payload '\(Self.silent)'"
        ),
        UserMistake(
            "a push that has expired",
            "push {token} --topic {topic} --expiration 7",
            2,
            "200 discarded...",
            "wakegate: discarded: it had expired when it came; give --expiration a UNIX time to come, or leave it out"
        ),
        UserMistake(
            "a push for now or never",
            "push {token} --topic {topic} --expiration 0",
            2,
            "200 discarded...",
            "wakegate: discarded: --expiration 0 is now or never, and the device may not be woken now; `wakegate stats "
                + "--device {token}` says why"
        ),
        UserMistake(
            "a dry run that is taken for a push",
            "push {token} --topic {topic} --dry-run",
            0,
            "dry run, nothing was sent: it would be 200 ..."
        ),
        UserMistake(
            "a topic that is none",
            "push {token} --topic a~b",
            1,
            "400 BadTopic...",
            "wakegate: \"a b\" is no topic; ..."
        ),
        UserMistake(
            "a priority that is none",
            "push {token} --topic {topic} --priority 7",
            1,
            "400 BadPriority...",
            "wakegate: --priority is 10, 5 or 1; ..."
        ),
        UserMistake(
            "another topic's device",
            "push {token} --topic com.example.wrong",
            1,
            "400 DeviceTokenNotForTopic...",
            "wakegate: the device belongs to another topic than com.example.wrong; `wakegate stats --device {token}` "
                + "names it"
        ),
        UserMistake(
            "a device that was removed",
            "push {removed} --topic {topic}",
            1,
            "410 Unregistered...",
            "wakegate: the device was removed; a provider forgets its token. `wakegate device register {removed} "
                + "--topic {topic}` brings it back"
        ),
        UserMistake(
            "TLS to the admin listener",
            "stats --gateway https://{admin}",
            1,
            "wakegate: https://{admin} does not speak TLS; write http:// if this is the admin or the plain listener, "
                + "or name the port of the edge",
            all: true
        ),
        UserMistake(
            "TLS to the plain listener",
            "push {token} --topic {topic} --gateway https://{plain}",
            1,
            "wakegate: https://{plain} does not speak TLS; write http:// if this is the admin or the plain listener, "
                + "or name the port of the edge",
            all: true
        ),
        UserMistake(
            "cleartext to the edge, of an operator",
            "stats --gateway http://{edge}",
            1,
            "wakegate: the gateway answered 400 TLSRequired: This listener speaks TLS; write https:// "
                + "instead of http://.",
            all: true
        ),
        UserMistake(
            "cleartext to the edge, of a provider",
            "push {token} --topic {topic} --gateway http://{edge}",
            1,
            "...see whether it speaks TLS, as the edge does: write https://"
        ),
        UserMistake(
            "the edge for the admin listener",
            "stats --gateway https://{edge} --ca {ca}",
            1,
            "wakegate: the gateway answered 404 BadPath: This is the edge, for providers and workers; the route is on "
                + "the admin listener (admin: 127.0.0.1:9197 by default).",
            all: true
        ),
        UserMistake(
            "the edge for the admin listener, of a health check",
            "health --gateway https://{edge} --ca {ca}",
            1,
            "wakegate: the gateway answered 405 MethodNotAllowed: This is the edge, for providers and workers; the "
                + "route is on the admin listener (admin: 127.0.0.1:9197 by default).",
            all: true
        ),
        UserMistake(
            "the edge for the admin listener, about a device",
            "stats --device {token} --gateway https://{edge} --ca {ca}",
            1,
            "wakegate: the gateway answered 405 MethodNotAllowed: This route takes DELETE here. This is the edge, for "
                + "providers and workers; the route is on the admin listener (admin: 127.0.0.1:9197 by default).",
            all: true
        ),
        UserMistake(
            "the admin listener for the edge, of a provider",
            "push {token} --topic {topic} --gateway http://{admin}",
            1,
            "404 BadPath",
            "wakegate: no push is taken here: this is the admin listener, or no gateway; name the edge, port 2197 by "
                + "default",
            all: true
        ),
        UserMistake(
            "the admin listener for the edge, of a worker",
            "worker --topic {topic} --gateway http://{admin} -- true",
            1,
            "...404 BadPath: This is the admin listener; the route is on the edge, for providers and workers ..."
        ),
        UserMistake(
            "no authority for the edge",
            "push {token} --topic {topic} --gateway https://{edge}",
            1,
            "wakegate: the certificate of https://{edge} is not trusted ...",
            "...name its authority with --ca FILE ..."
        ),
        UserMistake(
            "a command that is no program",
            "worker --topic {topic} -- no-such-program",
            64,
            "wakegate: \"no-such-program\" is no program; put the path of one, or a name in PATH, after --",
            all: true
        ),
        UserMistake(
            "a folder for a program",
            "worker --topic {topic} -- ./drawer",
            64,
            "wakegate: \"./drawer\" is no program; put the path of one, or a name in PATH, after --",
            all: true
        ),
        UserMistake(
            "a topic that nobody knows",
            "topic pause com.example.unknown",
            1,
            "wakegate: the gateway answered 404 UnknownTopic: No device and no worker ever named this topic.",
            "`wakegate topic list` shows the topics there are",
            all: true
        ),
        UserMistake(
            "a device that nobody knows",
            "stats --device {stranger}",
            1,
            "wakegate: the gateway answered 404 UnknownDevice: No device has this token; ...",
            "`wakegate device list` shows the devices there are, and `wakegate device register` makes one known",
            all: true
        ),
        UserMistake(
            "a gateway that is not there",
            "health --gateway http://127.0.0.1:1",
            1,
            "wakegate: no gateway answers at http://127.0.0.1:1 ..."
        ),
    ]
}
