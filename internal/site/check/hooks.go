package check

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
)

// maxHook is the maximum timeout of a hook. Other hooks wait for it.
const maxHook = 5 * time.Minute

func checkHooks(ix *index, found *findings) {
	for h := range each(ix.Hooks) {
		if h.Alert {
			checkHook(found, h, "[alert]", "alert")
			continue
		}
		if !ValidLabel(h.Name) {
			found.report(at("hook", h.Name), labelCure(h.Name), "hook name %q is not valid", h.Name)
		}
		checkHook(found, h, "hook "+h.Name, "hook", h.Name)
	}
}

// checkHook checks the hook that is called title and is written at a key.
func checkHook(found *findings, h *site.Hook, title string, key ...string) {
	below := func(parts ...string) []string { return slices.Concat(key, parts) }
	if len(h.On) == 0 {
		found.report(below("on"), `such as ["`+event.SwitchFailed+`"]`, "%s has no events", title)
	}
	for k, name := range h.On {
		checkEvent(found, below("on", strconv.Itoa(k)), name)
	}
	switch {
	case len(h.Command) == 0 && h.URL == "" || len(h.Command) > 0 && h.URL != "":
		found.report(key, `command = ["/path/of/a/program"] or url = "https://…"`,
			"%s must have either a command or a url", title)
	case h.URL != "":
		if u, err := url.Parse(h.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
			u.User != nil {
			found.report(below("url"), `such as "https://chat.example/hook"`, "%s: its url is not that of a web server",
				title)
		}
	case !strings.HasPrefix(h.Command[0], "/"):
		found.report(below("command"), "write the full path of a program on the host",
			"command %q does not begin with /", h.Command[0])
	}
	if !account().MatchString(h.User) {
		found.report(below("user"), `such as "nobody"`, "user %q is not valid", h.User)
	}
	if h.Timeout <= 0 || h.Timeout > maxHook {
		found.report(below("timeout"), "more than 0, at most 5m", "timeout %s is out of range", h.Timeout)
	}
}

func checkEvent(found *findings, key []string, name string) {
	if !slices.Contains(event.All, name) {
		found.report(key, problem.SuggestOr(name, event.All, strings.Join(event.All, ", ")),
			"event %q does not exist", name)
	}
}
