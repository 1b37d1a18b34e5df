package control

import (
	"orrery/internal/backup"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Interrupted gives the restore of a site that was interrupted; nil: none was, or it is not for us to see.
func (c *Session) Interrupted(s *site.Site) (*backup.Restore, error) {
	return backup.Interrupted(c.Dirs, c.Store(), s.Key())
}

// unfinished refuses to bring up nodes that would lack what they had written, because their restore was interrupted.
func (j *Job) unfinished(p *plan.Plan) error {
	if j.Restores {
		return nil
	}
	from, err := j.Interrupted(j.Site)
	if err != nil || from == nil {
		return err
	}
	for _, step := range p.Steps {
		if (step.Kind == plan.CreateNode || step.Kind == plan.StartNode) && from.Waits(step.Subject) {
			try := "run the same orrery restore again, or orrery down --volumes to begin anew"
			if from.Staged() {
				try = "orrery up brings it to its end"
			}
			return problem.New(problem.Left, "a restore of %s was interrupted: its nodes would lack what they wrote", j.Site.Key()).At(backup.Aside(j.Dirs, j.Site.Key())).
				Try("%s", try)
		}
	}
	return nil
}
