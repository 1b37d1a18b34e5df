package check

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site/event"
)

// maxHook is the maximum timeout of a hook. Other hooks wait for it.
const maxHook = 5 * time.Minute

func checkHooks(ix *index, found *findings) {
	for h := range each(ix.Hooks) {
		if !ValidLabel(h.Name) {
			found.report(at("hook", h.Name), labelCure(h.Name), "hook name %q is not valid", h.Name)
		}
		if len(h.On) == 0 {
			found.report(at("hook", h.Name, "on"), `such as ["`+event.SwitchFailed+`"]`, "hook %s has no events", h.Name)
		}
		for k, name := range h.On {
			checkEvent(found, at("hook", h.Name, "on", strconv.Itoa(k)), name)
		}
		switch {
		case len(h.Command) == 0 && h.URL == "" || len(h.Command) > 0 && h.URL != "":
			found.report(at("hook", h.Name), `command = ["/path/of/a/program"] or url = "https://…"`,
				"hook %s must have either a command or a url", h.Name)
		case h.URL != "":
			if u, err := url.Parse(h.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
				u.User != nil {
				found.report(at("hook", h.Name, "url"), `such as "https://chat.example/hook"`,
					"hook %s: its url is not that of a web server", h.Name)
			}
		case !strings.HasPrefix(h.Command[0], "/"):
			found.report(at("hook", h.Name, "command"), "write the full path of a program on the host",
				"command %q does not begin with /", h.Command[0])
		}
		if !account().MatchString(h.User) {
			found.report(at("hook", h.Name, "user"), `such as "nobody"`, "user %q is not valid", h.User)
		}
		if h.Timeout <= 0 || h.Timeout > maxHook {
			found.report(at("hook", h.Name, "timeout"), "more than 0, at most 5m", "timeout %s is out of range", h.Timeout)
		}
	}
}

func checkEvent(found *findings, key []string, name string) {
	if !slices.Contains(event.All, name) {
		found.report(key, problem.SuggestOr(name, event.All, strings.Join(event.All, ", ")),
			"event %q does not exist", name)
	}
}
