//! The tool loop that resumes an agent from a history until a budget is reached.
