package experiment

import (
	"time"

	"orrery/internal/problem"
	"orrery/internal/strict"
)

// NeverRecreate is the number of rounds per instance if nodes are never recreated.
const NeverRecreate = 1 << 30

// perInstance is a number, or "auto", which is 0, or "none", which is NeverRecreate.
type perInstance int

// Parse parses all forms.
func (p *perInstance) Parse(value any) *problem.Problem {
	switch v := value.(type) {
	case string:
		switch v {
		case "auto":
			*p = 0
			return nil
		case "none":
			*p = NeverRecreate
			return nil
		}
	case int64:
		if v >= 1 && v < NeverRecreate {
			*p = perInstance(v)
			return nil
		}
	}
	return mistake("%s is neither \"auto\" nor a number from 1 on", strict.Describe(value)).
		Try("1 recreates nodes before every round; \"auto\" chooses how often; \"none\" never recreates them and yields no verdicts")
}

// waitTimeout is a duration, or "none", which is 0.
type waitTimeout time.Duration

// Parse parses both forms.
func (p *waitTimeout) Parse(value any) *problem.Problem {
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	switch {
	case text == "none":
		d = 0
	case err != nil || d <= 0 || d > maxWaitTimeout:
		return mistake("%s is neither \"none\" nor a time up to %v", strict.Describe(value), maxWaitTimeout).
			Try("write a duration such as \"2m\": how long a run waits in total for the host to become idle")
	}
	*p = waitTimeout(d)
	return nil
}
