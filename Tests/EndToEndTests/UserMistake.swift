import Foundation

/// A mistake of a user, with the expected output of the program.
struct UserMistake: Sendable {
    let what: String
    /// The environment variables and the words after `wakegate`; names in braces are filled in by the scene.
    let variables: [String]
    let line: [String]
    let status: Int32
    /// The expected parts of the output or of standard error: whole lines, or parts of lines with `...` at an end.
    let says: [String]
    /// True if `says` is the complete output.
    let isAll: Bool

    /// Parses sessions: after `#` the mistake and the exit status, after `$` the command line, in which `~` stands for
    /// a space within a word, then the printed lines, with `...` for omitted ones.
    static func sessions(_ text: String) -> [UserMistake] {
        text.split(separator: "\n# ").map { session in
            let lines = session.split(separator: "\n").map(String.init)
            let heading = lines[0].trimmingPrefix("# ").split(separator: ": ")
            let words = lines[1].dropFirst(2).split(separator: " ").map { String($0).replacing("~", with: " ") }
            let program = words.firstIndex(of: "wakegate") ?? 0
            return UserMistake(
                what: String(heading[0]),
                variables: Array(words[..<program]),
                line: Array(words[(program + 1)...]),
                status: heading.last.flatMap { Int32($0) } ?? -1,
                says: lines.dropFirst(2).filter { $0 != "..." },
                isAll: lines.last != "..."
            )
        }
    }
}

extension UserMistake {
    private static let silent = #"{"aps":{"content-available":1}}"#

    /// Mistakes in the arguments and in the files that they name.
    static let ofWords = Self.sessions(
        #"""
        # a command that other programs have: 64
        $ wakegate device show {token}
        wakegate: unknown command "device show"; `wakegate stats --device {token}` explains a device, and `wakegate \#
        doctor {token}` says what would help
        # a device as an option: 64
        $ wakegate doctor --device {token}
        wakegate: unknown option --device; write `wakegate doctor DEVICE`
        ...
        # a policy of a topic that is tried: 64
        $ wakegate what-if --set topics.a.b.policy.launchInterval=10m
        wakegate: write launchInterval with --topic a.b: --topic a.b --set launchInterval=600
        # a misspelt option: 64
        $ wakegate push {token} --topc a
        wakegate: unknown option --topc; did you mean --topic?
        usage: wakegate push TOKEN --topic TOPIC [options]
        see `wakegate push --help`
        # a priority in words: 64
        $ wakegate push {token} --topic {topic} --priority high
        wakegate: --priority is "high"; write 10, 5 or 1
        # a payload that was cut: 64
        $ wakegate push {token} --topic {topic} --payload {"aps":{"content-available":1}
        wakegate: --payload ends too early, in the object that begins at line 1, column 1: it was cut short; \#
        nothing was sent
        write a JSON object, such as \#(Self.silent)
        # an empty payload on standard input: 64
        $ wakegate push {token} --topic {topic} --payload -
        wakegate: the payload on standard input is not JSON: it is empty; nothing was sent
        ...
        # a payload's file that is missing: 1
        $ wakegate push {token} --topic {topic} --payload @nofile.json
        wakegate: nofile.json cannot be read (no such file); name the payload's file behind --payload @
        # a payload's file that was cut: 64
        $ wakegate push {token} --topic {topic} --payload @cut.json
        wakegate: the payload in cut.json ends too early, in the string that begins at line 2, column 3: it was \#
        cut short; nothing was sent
        ...
        # a payload's file without a name: 64
        $ wakegate push {token} --topic {topic} --payload @
        wakegate: --payload @ names no file; write --payload @FILE
        # a provider's key that is missing: 1
        $ wakegate push {token} --topic {topic} --provider-key no.p8 --team TEAM123456 --key-id KEY1234567
        wakegate: --provider-key: no.p8 cannot be read (no such file); ...
        ...
        # a certificate's file that is missing: 1
        $ wakegate push {token} --topic {topic} --cert no.pem
        wakegate: no.pem cannot be read (no such file); look at --ca, --cert and --key
        # a client certificate without its key: 1
        $ wakegate push {token} --topic {topic} --cert {ca}
        wakegate: {ca}, which --cert names, holds no private key in PEM; name the file of its key with --key
        # a client certificate that is none: 1
        $ wakegate push {token} --topic {topic} --cert text.txt
        wakegate: text.txt, which --cert names, holds no certificate in PEM; name the PEM file of the certificate \#
        to show
        # another certificate's key: 1
        $ wakegate push {token} --topic {topic} --cert {ca} --key .wakegate/provider.p8
        ...see whether the key is that of the certificate: look at --cert and --key
        # a client key without its certificate: 64
        $ wakegate stats --key text.txt
        wakegate: --key needs --cert; write --cert FILE
        # a token with a space in it: 64
        $ wakegate stats --token a~b
        wakegate: the token has characters that none has; give it as `wakegate token issue` prints it
        # a port that is none: 64
        $ wakegate stats --gateway https://127.0.0.1:99999
        wakegate: --gateway is "https://127.0.0.1:99999"; write a URL such as https://127.0.0.1:2197
        # a URL with the route in it: 64
        $ wakegate push {token} --topic {topic} --gateway https://{edge}/3/device
        wakegate: --gateway is "https://{edge}/3/device"; leave out what stands behind the port: the command adds it
        # a key to add that is missing: 1
        $ wakegate key add no.p8 --team TEAM123456 --key-id KEY1234567 --keys keys
        wakegate: no.p8 cannot be read (no such file); name a file that is there.
        # a key id that is none: 64
        $ wakegate key add text.txt --team TEAM123456 --key-id short --keys keys
        wakegate: --key-id is "short"; a key id is 10 capital letters and digits, shown next to the key
        # an environment that is none: 64
        $ wakegate key add text.txt --team TEAM123456 --key-id KEY1234567 --keys keys --environment sandbox
        ...write development or production...
        ...
        # a file without a key: 1
        $ wakegate key add text.txt --team TEAM123456 --key-id KEY1234567 --keys keys
        wakegate: text.txt holds no key in PEM ...
        ...
        # a key that a password protects: 1
        $ wakegate key add encrypted.p8 --team TEAM123456 --key-id KEY1234567 --keys keys
        wakegate: encrypted.p8 holds no key in PEM without a password ...
        # a folder of keys that is missing: 1
        $ wakegate key list --keys nokeys
        wakegate: nokeys is missing: no such folder; ...
        ...
        # a trace that is missing: 1
        $ wakegate simulate no.jsonl
        wakegate: no.jsonl cannot be read (no such file); name a trace file, or - for standard input
        # a folder for a trace: 1
        $ wakegate simulate drawer
        wakegate: drawer cannot be read (it is a folder); name a trace file, or - for standard input
        # fault rules that are missing: 78
        $ wakegate dev --faults no.json5 --state {folder}/faulty
          no.json5: cannot be read (no such file); name a readable file with --faults
        ...
        # fault rules to set that are missing: 1
        $ wakegate faults set no.json5
        wakegate: no.json5 cannot be read (no such file); name the file with the rules
        """#
    )

    /// Mistakes in tokens, contexts and the configuration.
    static let ofFiles = Self.sessions(
        #"""
        # a role that is none: 64
        $ wakegate token issue --role worke --topic {topic} --state {folder}/state
        wakegate: --role is "worke"; write worker or operator; did you mean worker?
        # a state folder that is none: 1
        $ wakegate token issue --role worker --topic {topic} --state {folder}/wrong
        wakegate: the state folder {folder}/wrong does not exist; name the gateway's with --state DIR or --config FILE
        # a token to revoke that was never issued: 1
        $ wakegate token revoke 0123456789abcdef0123456789abcdef --state {folder}/state
        wakegate: no token 0123456789abcdef0123456789abcdef was issued from {folder}/state, and nothing is \#
        revoked; see `wakegate token list`, and give --unlisted for one that another gateway or an older version issued
        # a worker's token without a topic: 64
        $ wakegate token issue --role worker --state {folder}/wrong
        ...--topic is missing...
        ...
        # a token for a topic that is none: 64
        $ wakegate token issue --role worker --topic a~b --state {folder}/wrong
        ...--topic is "a b"...
        ...
        # a token that is good for a word: 64
        $ wakegate token issue --role worker --topic t --expires soon --state {folder}/wrong
        ...such as 90d...
        ...
        # a token's id that is none: 64
        $ wakegate token revoke 0123 --state {folder}/wrong
        ...32 digits...
        ...
        # a token to revoke in a state folder that is none: 1
        $ wakegate token revoke 00000000000000000000000000000000 --state {folder}/wrong
        ...the state folder {folder}/wrong does not exist...
        ...
        # the tokens of a state folder that is none: 1
        $ wakegate token list --state {folder}/wrong
        ...the state folder {folder}/wrong does not exist...
        ...
        # a token in a state folder that is right: 0
        $ wakegate token issue --role worker --topic t --state {folder}/state
        ...(worker, t) of {folder}/state is good until...
        ...
        # a context whose file is missing: 0
        $ wakegate context add early --gateway https://{edge} --ca no.pem
        wakegate: {folder}/no.pem, which --ca names, is missing: no such file yet
        wakegate: use it with `wakegate context use early`
        # a context that is none: 64
        $ wakegate context use prod
        wakegate: no context "prod" is stored; ...
        ...
        # a comma that is missing in the configuration: 78
        $ wakegate serve --check --config comma.json5
        wakegate: the configuration has a fault:
          comma.json5: is not JSON5 (line 3, column 3: a comma or } should be here); correct the syntax there
        # a key that stands twice in the configuration: 78
        $ wakegate serve --check --config twice.json5
        wakegate: the configuration has a fault:
          twice.json5: has "admin" twice (line 2, column 3; line 4, column 3); leave one of the two
        # a certificate that is missing: 78
        $ wakegate serve --check --config files.json5
          tls.certificate: {folder}/no.pem cannot be read (no such file); name a readable PEM file
        ...
        # a port that is in use: 78
        $ wakegate serve --check --edge off --admin {admin} --state {folder}/state
        wakegate: the configuration has a fault:
          admin: {admin} is in use; stop who listens there, or choose another port
        # a store that a newer version wrote: 78
        $ wakegate serve --check --edge off --admin 127.0.0.1:0 --state {newer}
          state: {newer}/journal.sqlite has format 99, ...
        ...
        """#
    )

    /// Mistakes that only a gateway can detect.
    static let ofGateways = Self.sessions(
        #"""
        # a device token that is none: 1
        $ wakegate push zz --topic {topic}
        400 BadDeviceToken...
        wakegate: "zz" is not a device token: an even number of hexadecimal digits, 32 to 200 of them
        ...
        # a device that is not registered: 1
        $ wakegate push {stranger} --topic {topic} --gateway https://{explicit} --ca {ca}
        400 BadDeviceToken...
        wakegate: no device is registered under this token; `wakegate device register {stranger} --topic {topic}` \#
        does it, and registration: "open" takes every token
        ...
        # a push that wakes nobody: 2
        $ wakegate push {token} --topic {topic} --payload {"aps":{"alert":"x"}}
        200 no-wake...
        wakegate: no-wake: its aps has no "content-available": 1, so it is counted and causes no wake; a silent push \#
        is --payload '\#(Self.silent)'
        ...
        # a push that has expired: 2
        $ wakegate push {token} --topic {topic} --expiration 7
        200 discarded...
        wakegate: discarded: it had expired when it came; give --expiration a duration such as 10m, or leave it out
        ...
        # a push for now or never: 2
        $ wakegate push {token} --topic {topic} --expiration 0
        200 discarded...
        wakegate: discarded: --expiration 0 is now or never, and the device may not be woken now; `wakegate stats \#
        --device {token}` says why
        ...
        # a dry run that is taken for a push: 0
        $ wakegate push {token} --topic {topic} --dry-run
        dry run, nothing was sent: it would be 200 ...
        ...
        # a topic that is none: 1
        $ wakegate push {token} --topic a~b
        400 BadTopic...
        wakegate: "a b" is not a topic; ...
        ...
        # a priority that is none: 1
        $ wakegate push {token} --topic {topic} --priority 7
        400 BadPriority...
        wakegate: --priority is 10, 5 or 1; ...
        ...
        # another topic's device: 1
        $ wakegate push {token} --topic com.example.wrong
        400 DeviceTokenNotForTopic...
        wakegate: the device belongs to another topic than com.example.wrong; `wakegate stats --device {token}` \#
        names it
        ...
        # a device that was removed: 1
        $ wakegate push {removed} --topic {topic}
        410 Unregistered...
        wakegate: the device was removed; a provider forgets its token. `wakegate device register {removed} \#
        --topic {topic}` brings it back
        ...
        # TLS to the admin listener: 1
        $ wakegate stats --gateway https://{admin}
        wakegate: https://{admin} does not speak TLS; write http:// if this is the admin or the plain listener, or \#
        name the port of the edge
        # TLS to the plain listener: 1
        $ wakegate push {token} --topic {topic} --gateway https://{plain}
        wakegate: https://{plain} does not speak TLS; write http:// if this is the admin or the plain listener, or \#
        name the port of the edge
        # cleartext to the edge, of an operator: 1
        $ wakegate stats --gateway http://{edge}
        wakegate: the gateway answered 400 TLSRequired: This listener speaks TLS; write https:// instead of http://.
        # cleartext to the edge, of a provider: 1
        $ wakegate push {token} --topic {topic} --gateway http://{edge}
        ...see whether it speaks TLS, as the edge does: write https://
        ...
        # the edge for the admin listener: 1
        $ wakegate stats --gateway https://{edge} --ca {ca}
        wakegate: the gateway answered 404 BadPath: This is the edge, for providers and workers; the route is on \#
        the admin listener (admin: 127.0.0.1:9197 by default).
        # the edge for the admin listener, of a health check: 1
        $ wakegate health --gateway https://{edge} --ca {ca}
        wakegate: the gateway answered 405 MethodNotAllowed: This is the edge, for providers and workers; the \#
        route is on the admin listener (admin: 127.0.0.1:9197 by default).
        # the edge for the admin listener, about a device: 1
        $ wakegate stats --device {token} --gateway https://{edge} --ca {ca}
        wakegate: the gateway answered 405 MethodNotAllowed: This route takes DELETE here. This is the edge, for \#
        providers and workers; the route is on the admin listener (admin: 127.0.0.1:9197 by default).
        # the admin listener for the edge, of a provider: 1
        $ wakegate push {token} --topic {topic} --gateway http://{admin}
        404 BadPath
        wakegate: no push is taken here: this is the admin listener, or no gateway; name the edge, port 2197 by \#
        default
        # the admin listener for the edge, of a worker: 1
        $ wakegate worker --topic {topic} --gateway http://{admin} -- true
        ...404 BadPath: This is the admin listener; the route is on the edge, for providers and workers ...
        ...
        # no authority for the edge: 1
        $ wakegate push {token} --topic {topic} --gateway https://{edge}
        wakegate: the certificate of https://{edge} is not trusted (the certificate has another name or no \#
        trusted authority...
        ...name its authority with --ca FILE ...
        ...
        # a state to report without a device: 64
        $ wakegate worker --topic {topic} --report-app-state -- true
        ...--report-app-state does not know which device...
        ...
        # a command that is no program: 64
        $ wakegate worker --topic {topic} -- no-such-program
        wakegate: "no-such-program" is not a program; put the path of one, or a name in PATH, after --
        # a folder for a program: 64
        $ wakegate worker --topic {topic} -- ./drawer
        wakegate: "./drawer" is not a program; put the path of one, or a name in PATH, after --
        # a topic that nobody knows: 1
        $ wakegate topic pause com.example.unknown
        wakegate: the gateway answered 404 UnknownTopic: No device and no worker ever named this topic.
        `wakegate topic list` shows the topics there are
        # a device that nobody knows: 1
        $ wakegate stats --device {stranger}
        wakegate: the gateway answered 404 UnknownDevice: No device has this token; `wakegate device list` shows \#
        the devices there are, and `wakegate device register` makes one known
        # a list of a topic that nobody knows: 0
        $ wakegate push list --topic com.example.unknown
        wakegate: the gateway answered 404 UnknownTopic: No device and no worker ever named this topic.
        `wakegate topic list` shows the topics there are
        ...
        # workers of a topic that nobody knows: 0
        $ wakegate worker list --topic com.example.unknown
        wakegate: the gateway answered 404 UnknownTopic: No device and no worker ever named this topic.
        `wakegate topic list` shows the topics there are
        ...
        # devices of a topic that nobody knows: 0
        $ wakegate device list --topic com.example.unknown
        wakegate: the gateway answered 404 UnknownTopic: No device and no worker ever named this topic.
        ...
        # events of an outcome that is none: 1
        $ wakegate events --outcome nosuch
        ...The words are push, refused, launched, ...
        ...
        # a device token for an apns-id: 64
        $ wakegate push show {token}
        wakegate: "{token}" is not an apns-id; `wakegate push list` shows them
        # a push of another device: 1
        $ wakegate push show 9a96d8fb-4351-8e93-6f91-0f7f9be3cc0f --device {stranger}
        wakegate: the gateway answered 404 UnknownPush: ...
        no push of this device has this apns-id; leave --device out
        ...
        # a task to launch that does not wait: 1
        $ wakegate task launch {token} com.example.refresh
        wakegate: the gateway answered 409 TaskNotWaiting: No request of this identifier waits on the device; it may \#
        run already, or have ended: `wakegate task list {token}` shows the tasks of the device
        """#
    )
}
