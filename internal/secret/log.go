package secret

// fetched are the values that any keyring of this process has fetched, for what is logged of no
// site in particular.
var fetched = Keyring{values: map[string]string{}}

// remember lets Redact know a value. Secrets of one name may have several, in several sites.
func remember(name, value string) {
	fetched.mu.Lock()
	defer fetched.mu.Unlock()
	for known, again := fetched.values[name]; again && known != value; known, again = fetched.values[name] {
		name += "'"
	}
	fetched.values[name] = value
}

// Redact replaces the values of all secrets that this process has fetched by their names.
func Redact(text string) string { return fetched.Redact(text) }
