package verb

// synonyms returns what Orrery calls a verb that other tools have, or "" if it has nothing alike.
func synonyms(verb string) string {
	switch verb {
	case "ps", "list", "get", "top", "state", "info", "show", "describe", "inspect":
		return "orrery status"
	case "ssh", "enter", "attach", "login", "bash", "sh":
		return "orrery shell"
	case "run":
		return "orrery exec"
	case "apply", "deploy", "create", "launch", "converge", "provision", "configure", "playbook":
		return "orrery up"
	case "rm", "delete", "destroy", "remove", "halt", "undeploy":
		return "orrery down"
	case "validate", "lint", "test":
		return "orrery check"
	case "events", "history", "audit":
		return "orrery journal"
	case "diff", "preview", "dry-run", "drift":
		return "orrery plan"
	case "log":
		return "orrery logs"
	case "copy", "scp", "push", "pull":
		return "orrery cp"
	case "reload", "reboot":
		return "orrery restart"
	case "migrate":
		return "orrery move"
	case "promote", "activate":
		return "orrery switch"
	case "revert", "undo":
		return "orrery rollback"
	case "clone", "branch":
		return "orrery twin create"
	case "port-forward", "tunnel", "proxy":
		return "orrery forward"
	case "bench", "benchmark", "measure":
		return "orrery lab run"
	case "new":
		return "orrery init"
	case "pause", "suspend", "freeze":
		return "orrery stop"
	}
	return ""
}
