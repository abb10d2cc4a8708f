"""What everything stands on: settings, rows, names of files, folder trees."""
