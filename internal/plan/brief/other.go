package brief

import (
	"orrery/internal/plan"
	"orrery/internal/text/humanize"
)

const layerNoun = "layer"

// lostVolume is what users lose with a volume.
const lostVolume = "its data is lost"

// otherLine returns the line about something that is not a node. It returns nil for a batch, which
// does nothing itself.
func (s *subject) otherLine(step *plan.Step) *Line {
	l := &Line{Verb: step.Kind.Verb(), Names: []string{step.Subject}, Reason: step.Reason, rank: len(nodeActions) + 1}
	switch step.Kind {
	case plan.BeginBatch:
		return nil
	case plan.RemoveVolume:
		l.Noun, l.Lost, l.rank = "volume", lostVolume, 0
	case plan.MakeNetwork, plan.RemoveNetwork:
		s.describeNetwork(l)
	case plan.BuildLayer, plan.FetchLayer:
		l.Noun, l.Reason = layerNoun, "not in the store"
	case plan.WriteNames, plan.RestoreNames, plan.ForgetNames:
		l.Verb, l.Noun, l.Names = "update", "names of nodes on host", []string{step.Host}
		if step.Kind == plan.ForgetNames {
			l.Verb = "remove"
		}
	case plan.ForgetRelease:
		l.Noun = "release"
	case plan.PrepareHost, plan.RestoreHost:
		l.Noun, l.Names = "host", []string{step.Host}
	default:
		l.Noun = "set"
	}
	return l
}

// describeNetwork completes the line about a network of a host.
func (s *subject) describeNetwork(l *Line) {
	made := s.steps[plan.MakeNetwork]
	l.Noun = "network"
	switch {
	case made == nil:
		l.Verb = "remove"
		return
	case s.has(plan.RemoveNetwork):
		l.Verb = "recreate"
	case made.OldNetwork != nil:
		l.Verb = "update"
	default:
		l.Verb = "create"
	}
	l.Reason = made.Reason
	if len(made.Disturbs) > 0 {
		l.Effect = "interrupts " + humanize.List(made.Disturbs, maxNames)
	}
}
