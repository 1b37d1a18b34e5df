package control

import "orrery/internal/site"

// An Asker gets the consent of the caller to what cannot be taken back, or disturbs production.
type Asker interface {
	// Ask returns nil if the caller agrees, and a Refused problem if not. Asked reports whether
	// somebody was waited for: what was seen before may not be so any more.
	Ask(q Question) (asked bool, err error)
}

// A Question is what a caller has to agree to, by the name of the site.
type Question struct {
	About Consent
	Site  string // its name
	Why   string // what would happen, in whole sentences
	LetGo func() // to be called before somebody is waited for: nobody else has to wait for the answer; nil: nothing
}

// A Consent is a kind of what callers have to agree to.
type Consent string

// What callers have to agree to.
const (
	Production Consent = "production" // nodes of a site in production are disturbed
	Volumes    Consent = "volumes"    // persistent data is deleted permanently
	Replace    Consent = "replace"    // data gives way to what is restored
	Restore    Consent = "restore"    // what was written since a snapshot is lost
	Moves      Consent = "moves"      // nodes move to other hosts that were chosen for them
	Trust      Consent = "trust"      // what hosts keep of a release is used
	Paths      Consent = "paths"      // volumes of a backup come to directories that its site file names
)

// Agreed is the Asker of a caller who has agreed to everything beforehand.
type Agreed struct{}

// Ask agrees.
func (Agreed) Ask(Question) (bool, error) { return false, nil }

// outside asks for somebody who holds a site's lock, and lets go of it before anybody is waited for.
type outside struct {
	Asker
	letGo func()
}

func (o outside) Ask(q Question) (asked bool, err error) {
	q.LetGo = o.letGo
	return o.Asker.Ask(q)
}

// AskProduction asks, if a site is in production, whether what follows may be.
func (c *Session) AskProduction(s *site.Site, what string) (asked bool, err error) {
	if !s.Production {
		return false, nil
	}
	return c.Asker.Ask(Question{About: Production, Site: s.Name, Why: s.Name + " is in production. " + what})
}
