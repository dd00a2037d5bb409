package import Engine
package import Wire

extension APIError {
    package static let badPath = noRoute(
        "There is no such route; GET /openapi.json of the admin listener has them all."
    )
    package static let routeOfAdmin = noRoute(
        "This is the edge, for providers and workers; the route is on the admin listener (admin: 127.0.0.1:9197 by "
            + "default)."
    )
    /// The error for a GET of an admin route on the edge. It refuses the method, like APNs, and names the right
    /// listener.
    package static let methodOfAdmin = APIError(405, "MethodNotAllowed", Self.routeOfAdmin.message)
    package static let routeOfEdge = noRoute(
        "This is the admin listener; the route is on the edge, for providers and workers (edge: port 2197 by default)."
    )
    package static let badDeviceToken = APIError(
        400,
        "BadDeviceToken",
        "A device token is an even number of hexadecimal digits, 32 to 200 of them."
    )
    package static let badTopic = APIError(
        400,
        "BadTopic",
        "A topic is 1 to 255 characters out of A-Z, a-z, 0-9, '.', '_' and '-'."
    )
    package static let unknownDevice = APIError(
        404,
        "UnknownDevice",
        "No device has this token; register it with POST /v1/topics/<topic>/devices."
    )
    package static let otherTopic = APIError(
        409,
        "DeviceTokenNotForTopic",
        "The token belongs to another topic; remove it there first, or use the topic it has."
    )
    package static let full = unavailable(
        "The gateway keeps as many devices or topics as its limits allow; GET /v1/stats says which of "
            + "limits.devicesMax, limits.devicesPerTopicMax and limits.topicsMax to raise."
    )
    package static let tooManyRequests = tooMany(
        "The connection's incomplete requests exceed limits.requestBytesPerConnectionMax; finish some first."
    )
    package static let foreignPage = forbidden(
        "Requests for another host, for two hosts or none, or from a page of another origin, are refused on this "
            + "listener; use its loopback or configured address."
    )
    package static let overloaded = unavailable(
        "More requests have been begun than limits.requestBytesMax holds; send this one again."
    )
    package static let headerListTooLarge = APIError(
        431,
        "RequestHeaderFieldsTooLarge",
        "The header fields are larger than limits.headerListBytesMax; send fewer or shorter ones."
    )
    package static let tooManyConnections = tooMany(
        "As many connections show this token as limits.connectionsPerCredentialMax allows; close some, or use another."
    )
    package static let tooManyStreams = tooMany(
        "As many streams are open with this token or certificate, or from this address, as "
            + "limits.streamsPerCredentialMax allows; end some, or use another."
    )
    package static let tooManyStreamsOfDevice = tooMany(
        "As many streams name a device of this query as limits.streamsPerDeviceMax allows; end some of them, or "
            + "leave it out."
    )
    package static let tooManyLiveStreams = unavailable(
        "As many dashboards are open as limits.liveStreamsMax allows; close one, or raise it."
    )
    package static let tooManyEventStreams = unavailable(
        "As many follow what happens as limits.eventStreamsMax allows; end one of them, or raise it."
    )
    package static let badTaskIdentifier = APIError(
        400,
        "BadTaskRequest",
        "The identifier of a task is 1 to 255 characters out of A-Z, a-z, 0-9, '.', '-' and '_'."
    )
    package static let badSessionName = APIError(
        400,
        "BadSession",
        "The name of a session is 1 to 255 characters out of A-Z, a-z, 0-9, '.', '-' and '_'."
    )
    package static let unknownWake = APIError(
        404,
        "UnknownWake",
        "The gateway knows no wake with this id, or has forgotten it; use an id of the event stream."
    )
    package static let unknownStream = APIError(
        404,
        "UnknownStream",
        "No stream that is open has this name; names are those of the header wakegate-stream of a subscription."
    )
    package static let unknownPush = APIError(
        404,
        "UnknownPush",
        "The history knows no push with this apns-id; it keeps the last days, and refused pushes are not in it."
    )
    package static let unknownTopic = APIError(404, "UnknownTopic", "No device and no worker ever named this topic.")
    package static let shutdown = APIError(
        503,
        "Shutdown",
        "The gateway is shutting down; connect again in a few seconds."
    )
    package static let wakeInFlight = APIError(
        409,
        "WakeInFlight",
        "A push, a refresh or a session's wake of this device is in flight already; wait for its result, or end it "
            + "with simulate-expiration."
    )
    package static let noWorker = APIError(
        409,
        "NoWorker",
        "No worker subscribed to the topic has a free slot for this device; start one, or wait."
    )
    package static let badName = APIError(
        400,
        "BadName",
        "name is 1 to 64 characters out of A-Z, a-z, 0-9, '.', '_' and '-', and begins with no '.'."
    )
    package static let nothingStored = APIError(
        409,
        "NothingStored",
        "The gateway keeps its state in memory alone; start it with store: \"sqlite\" to have something to copy."
    )
    package static let storedInDatabase = APIError(
        409,
        "StoredInDatabase",
        """
        The gateway keeps its state in PostgreSQL, whose own tools copy it: pg_basebackup, with WAL archiving for what \
        comes later. Copy token.key of the state folder besides.
        """
    )
    package static let testPushesNotPermitted = APIError(
        403,
        "NotPermitted",
        "Operators may not push here; set operatorTestPushes to true in the configuration, or push as a provider."
    )
    package static let nothingPending = APIError(404, "NothingPending", "No push waits on this device.")
    package static let noWakeInFlight = APIError(
        409,
        "NoWakeInFlight",
        "No push, refresh or session's wake of this device is in flight; a processing or continued task ends with "
            + ".../tasks/<its identifier>/simulate-expiration."
    )

    package static let noFaultsHere = forbidden(
        "Fault rules are for tests: `wakegate dev` alone takes them, and this gateway was started otherwise."
    )
    package static let unknownFaultRule = APIError(
        404,
        "UnknownFaultRule",
        "No fault rule has this id; GET /v1/faults shows them all."
    )
    package static let tooManyFaultRules = APIError(
        409,
        "TooManyFaultRules",
        "There are as many fault rules as there may be; remove some with DELETE /v1/faults/<id>."
    )

    package static let missingToken = challenge(
        401,
        "MissingToken",
        "A bearer token is asked for here; send authorization: bearer TOKEN, which `wakegate token issue` made, or "
            + "connect with a worker's client certificate where tls.clientCA is set."
    )
    package static let invalidToken = challenge(
        401,
        "InvalidToken",
        "The field authorization is not a bearer token of this gateway; send one that `wakegate token issue` made."
    )
    package static let expiredToken = challenge(
        401,
        "ExpiredToken",
        "The token has expired; have another made by `wakegate token issue`."
    )
    package static let revokedToken = challenge(
        401,
        "RevokedToken",
        "The token was revoked; have another made by `wakegate token issue`."
    )
    package static let operatorsOnly = challenge(
        403,
        "Forbidden",
        "The token's role is worker; this takes one of `wakegate token issue --role operator`."
    )
    package static let foreignTopic = challenge(
        403,
        "Forbidden",
        "The token does not name this topic; have one made by `wakegate token issue --topic` that does."
    )
    package static let foreignTopicOfCertificate = forbidden(
        "The client certificate does not name this topic; have one made that has it as UID of its subject."
    )
    package static let providersCertificate = forbidden(
        "The client certificate is a provider's, which may push alone; a worker's has OU=worker in its subject."
    )
    package static let everyTopicOnly = challenge(
        403,
        "Forbidden",
        "The token is bound to topics, and this is about all; it takes an operator's token made without --topic."
    )
    package static let tokensUnreadable = unavailable(
        "Tokens cannot be checked; the gateway's log names the file and the remedy."
    )

    private static func noRoute(_ message: String) -> APIError { APIError(404, "BadPath", message) }

    static func badQuery(_ message: String) -> APIError { APIError(400, "BadQuery", message) }

    static func forbidden(_ message: String) -> APIError { APIError(403, "Forbidden", message) }

    static func unavailable(_ message: String) -> APIError { APIError(503, "ServiceUnavailable", message) }

    private static func tooMany(_ message: String) -> APIError { APIError(429, "TooManyRequests", message) }

    private static func challenge(_ status: Int, _ reason: String, _ message: String) -> APIError {
        var error = APIError(status, reason, message)
        error.isChallenge = true
        return error
    }

    package static func unregistered(at timestamp: Int64) -> APIError {
        var error = APIError(410, "Unregistered", "The device was removed; register it again first.")
        error.timestamp = timestamp
        return error
    }

    package static func wakeEnded(_ outcome: String) -> APIError {
        var error = APIError(409, "WakeEnded", "The wake had ended before this answer: \(outcome).")
        error.outcome = outcome
        return error
    }

    package static func extensionLimitReached(_ deadline: Int64, isContinued: Bool = false) -> APIError {
        var error = APIError(
            409,
            "ExtensionLimitReached",
            isContinued
                ? "A continued task has time as long as it advances; report its progress with "
                    + "POST /v1/wakes/<wake>/progress."
                : "The wake has all the time that policy.maxExtension gives; finish by its deadline."
        )
        error.deadline = deadline
        return error
    }

    package static let nothingToReload = APIError(
        409,
        "NothingToReload",
        "The gateway was started with a configuration that cannot be read again; restart it to change something."
    )

    package static func faultRuleExists(_ id: String) -> APIError {
        APIError(409, "FaultRuleExists", "There is a fault rule \(id) already; remove it first, or use another id.")
    }

    /// - `limit`: the name of the reached limit in the configuration.
    package static func tooOften(limit: String) -> APIError {
        let message =
            "This token, certificate or address has asked as often this minute as limits.\(limit) allows; "
            + "ask again in the next."
        return tooMany(message)
    }

    package static func backupExists(_ name: String) -> APIError {
        APIError(409, "BackupExists", "There is a backup \(name) already; choose another name.")
    }

    package static func backupFailed(_ cause: StoreError) -> APIError {
        APIError(500, "BackupFailed", cause.message)
    }

    /// - `limit`: the maximum number of lists that are read concurrently.
    package static func tooManyLists(limit: Int) -> APIError {
        unavailable(
            "The gateway reads at most \(limit) lists from the database at a time, and as many are unfinished. Send "
                + "this again when one has been answered, and ask for less: one topic, or a smaller page."
        )
    }

    /// Returns the error while the gateway temporarily cannot store anything, with the cause.
    package static func storeUnavailable(_ cause: StoreError) -> APIError {
        unavailable(
            "The gateway cannot store anything for now; send this again. \(cause.message)"
        )
    }

    /// Returns the error when the gateway can no longer store anything, with the cause.
    package static func storeFailed(_ cause: StoreError?) -> APIError {
        let message = "The gateway takes nothing more until it is restarted, because it cannot store anything."
        return unavailable(cause.map { "\(message) \($0.message)" } ?? message)
    }
}
