package check

import (
	"fmt"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// Limits for the length of a generated secret.
const (
	minSecret = 8
	maxSecret = 4096
)

func checkSecrets(ix *index, found *findings) {
	for _, x := range ix.Secrets {
		key := at("secret", x.Name)
		if !fileNamePattern().MatchString(x.Name) {
			found.report(key, `letters, digits, "_", "." and "-"`, "secret name %q is not a valid file name", x.Name)
		}
		if sources := countTrue(x.File != "", len(x.Command) > 0, x.Generate != 0); sources != 1 {
			found.report(key, "set one of them", "secret %s has %d of file, command and generate", x.Name, sources)
		}
		if x.Generate != 0 && (x.Generate < minSecret || x.Generate > maxSecret) {
			found.report(at("secret", x.Name, "generate"), fmt.Sprintf("%d to %d; 32 is recommended", minSecret,
				maxSecret),
				"generate = %d is out of range", x.Generate)
		}
		if len(x.Command) > 0 && x.Command[0] == "" {
			found.report(at("secret", x.Name, "command"), `such as ["pass", "show", "karoo/db"]`,
				"the command is empty")
		}
	}
}

func checkRoleSecrets(ix *index, found *findings) {
	known := names(ix.Secrets, func(x *site.Secret) string { return x.Name })
	declared := toSet(known)
	for r := range each(ix.Roles) {
		seen := map[string]bool{}
		for k, use := range r.Secrets {
			key := at("role", r.Name, "secret", k, "name")
			switch {
			case use.Name == "":
				found.report(key, `write name = "…"`, "the secret has no name")
			case seen[use.Name]:
				found.report(key, "take one of them out", "secret %q is listed twice", use.Name)
			case ix.used[r.Name] && !declared[use.Name]:
				cure := fmt.Sprintf("declare it in site.toml: secret.%s.generate = 32", use.Name)
				found.report(key, problem.SuggestOr(use.Name, known, cure), "secret %q is not declared in the site file", use.Name)
			}
			seen[use.Name] = true
			checkOwner(found, at("role", r.Name, "secret", k, "owner"), use.Owner)
		}
	}
}
