// The names and colors of the gateway's codes on the page.

export const holdNames = {
  paused: "The topic is paused", worker: "Waits for a worker", battery: "Battery is low", thermal: "Too hot",
  network: "No network", forceQuit: "Force quit by its user", backgroundRefresh: "Background refresh is off",
  priority: "Priority 1 rides along",
};

export const holdName = (code) => holdNames[code] ?? code;

export const holdInk = (code) => (code === "worker" || code === "paused" ? "bad" : "warn");

export const stateNames = {
  pending: ["waiting", "pushes"], inFlight: ["in flight", "launches"], held: ["held back", "warn"],
  idle: ["idle", "idle"],
};

export const outcomeNames = {
  pending: ["waiting", "warn"], inFlight: ["in flight", "launches"], completed: ["completed", "good"],
  coalesced: ["coalesced", "merged"], noWake: ["no wake", "idle"], expired: ["discarded: expired", "bad"],
  exhausted: ["discarded: every attempt used", "bad"], forceQuit: ["discarded: force quit", "bad"],
  unregistered: ["discarded: device removed", "bad"], cancelled: ["discarded: dropped by an operator", "bad"],
};

export const resultNames = {
  newData: ["New data", "good"], noData: ["No data", "pushes"], failed: ["Failed", "warn"],
  expired: ["Expired: no answer in time", "bad"], lost: ["Lost: the worker went away", "idle"],
};
